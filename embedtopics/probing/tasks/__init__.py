"""What a probe is asked: treebanks and files of labels become tasks."""
