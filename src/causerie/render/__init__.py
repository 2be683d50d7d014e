"""How results look: numbers in words, tables in four formats, SVG charts, HTML pages."""
