"""How results look: formatted numbers, tables in four formats, SVG charts, HTML pages."""
