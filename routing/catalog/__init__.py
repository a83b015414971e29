"""The catalog as one file: parsed and validated as a whole, compared with the rows, written in one transaction.

`document` gives YAML nodes with their lines. `fields`, `parsers` and `validators` turn nodes into values, `columns`
know how a value is stored in a row, and `schema` is the table of everything that a file may hold. `parse` and
`references` find all problems; `apply` and `prune` write. A new kind of row is one entry in `schema`.
"""
