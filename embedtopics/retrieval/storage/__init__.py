"""The documents of an index, their metadata and its segments: what is on disk, and when.

::

    <folder>/
        catalog.sqlite              documents, metadata, names and checksums of all files below
        segments/000001/            never changed once the catalogue names it
            passages.npz            document and span of each passage
            ...                     vectors and indices of these passages

The catalogue is SQLite: one file that Python reads without another library, whose commits survive a
crash, and whose readers go on during a write (write-ahead log). A write puts its files on disk
first and names them in one transaction. Killed at any moment it leaves the index as it was before
or as it is after; what no version names, the next writer deletes. A removed document loses its row
at once; its passages stay in their segment, masked, until `compact` writes a new one.
"""
