"""When to exchange which mechanism: by a timetable, by place, by rules, or by experience.  Each is a component beside the broker."""
