"""The site of docs/: ``python -m scripts.website``, which is ``make docs``.

1. ``staging`` puts the pages together in build/website/docs: those of docs/, some of the repository's root, the notebooks, and
   ``generated`` ones that are made from the code, so that they cannot be out of date.
2. Zensical builds build/website/site from them (zensical.toml), in strict mode.
3. ``finishing`` takes out what would be fetched from elsewhere, and checks every link of every page.
"""
