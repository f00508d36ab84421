"""The crash lab: record what code does to the disk, find every state that a crash can leave, show those that break a promise.

`trace` is what was recorded, `recorder` records it, `models` says what a crash keeps, `states` lists what it leaves,
`promises` judges what a recovery makes of it. docs/crash-lab.md explains it, docs/formats-crash.md specifies the files.
"""
