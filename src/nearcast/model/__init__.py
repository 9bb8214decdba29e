"""The words of nearcast, and the one meaning of delivery.  No I/O, no clock, no Spark.

=====================  ====================================================================================
``delivery``            who receives what: the definition, and the oracle of every test
``explanation``         the same, term by term, as data and as text (``trace``: of one predicate)
``event``               what is published, whom and where it concerns; proximities
``subscription``        what somebody wants to hear of, where, and from which time
``history``             what is known of clients and events, as it was accepted
``geometry``, ``area``  points and the distance between them; circles, rectangles, outlines, boxes, polygons
``time``, ``temporal``  instants, durations, time frames; predicates on the validity of a context
``area_text``           areas as text, on the wire and in tables; ``value_text``: attribute values
``topic``               MQTT topics and topic filters
``values``              typed attributes, and values that are deliberately coarse
``predicate``           formulas over attributes (``predicate_text``: written back as text)
``evaluation``          what they mean (``scalar``, ``spatial``, ``shapes``: of single values, of places and of areas)
``ranges``              calculating with ranges; ``containment``: whether an area surely lies in another
``normal_form``         or of and, bounded
``cql2``                reads filters (``cql2_bounds``, ``cql2_operands``, ``cql2_compiler``: its steps)
``content_filter``      the filter terms of STEAM
=====================  ====================================================================================
"""
