"""Train an encoder on examples, and find out whether it became a better one."""

from embedtopics._utils.public import attach

MOVED = {
    "compare_before_after": "et.comparison.evaluate_encoders",
    "fit_static_student": 'et.training.distill(encoder, texts, method="texts")',
    "read_report": "et.training.TrainingReport.load",
    "split": "et.training.train_test_split",
    "to_sentence_transformer": "et.encoders.to_sentence_transformer",
    "fit_nli": 'et.training.fit(encoder, examples, kind="nli", out=...)',
    "fit_pairs": 'et.training.fit(encoder, examples, kind="pairs", out=...)',
    "fit_sts": 'et.training.fit(encoder, examples, kind="graded", out=...)',
    "fit_triplets": 'et.training.fit(encoder, examples, kind="triplets", out=...)',
    "fit_unsupervised": 'et.training.fit(encoder, examples, kind="texts", out=...)',
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
