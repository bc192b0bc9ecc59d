"""The folder of an index: documents, metadata and segments.

::

    <folder>/
        catalog.sqlite              documents, metadata, names and checksums of all files below
        segments/000001/            never changes after the catalog names it
            passages.npz            document and span of each passage
            ...                     vectors and indices of these passages

The catalog is SQLite: one file that Python reads without another library, whose commits survive a
crash, and whose readers continue during a write (write-ahead log). A write puts its files on disk
first and names them in one transaction. A process that is killed at any moment leaves the index as
it was before or after the write, and the next writer deletes files that no version names. The row
of a removed document is deleted at once; its passages stay in their segment, masked, until
`compact` writes a new one.
"""
