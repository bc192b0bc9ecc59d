"""Label texts with active learning; estimate valid shares of the labels."""

from embedtopics._utils.public import attach

MOVED = {
    "AnnotationProject": "et.AnnotationProject",
    "StudyDesign": "et.AnnotationProject(..., teach=0.5, n_test=50, overlap=0.0, random_state=0)",
}
"""Former public names, and where they are now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
