"""The catalog as one file: read and checked whole, compared with the rows, and written in one transaction.

`document` gives nodes with their lines, `forms` the forms of single values, `fields` and `readers` turn nodes into
values, `columns` know how a value lies in a row, `schema` is the table of all that a file may hold, `reading` and
`references` find every problem, `applying` and `pruning` write. A new kind of row is one entry in `schema`.
"""
