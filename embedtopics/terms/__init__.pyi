from ._weighting import ClassTfidf as ClassTfidf
