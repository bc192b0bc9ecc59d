"""Process large files in shards, in a pool of processes or on Ray; an interrupted run resumes."""

from embedtopics._utils.public import attach

MOVED = {
    "AssignTopics": "et.batch.assign(model, files, out)",
    "BatchPlan": "et.batch.results.BatchPlan",
    "BatchReport": "et.batch.results.BatchReport",
    "ClassifyTexts": "et.batch.classify(classifier, files, out)",
    "Columns": "et.batch.assign(model, files, out, text=..., id=...)",
    "CountTopics": "et.batch.count(model, files, out)",
    "EmbedTexts": "et.batch.embed(encoder, files, out)",
    "Manifest": "et.batch.embed(encoder, files, out), where files are paths or patterns",
    "TopicCounts": "et.batch.results.TopicCounts",
    "build_index": "et.batch.index(encoder, files, out, index=folder)",
    "make_manifest": "et.batch.embed(encoder, files, out), where files are paths or patterns",
    "plan_batch": "et.batch.embed(encoder, files, out, dry_run=True)",
    "run_batch": "et.batch.embed, assign, count, classify or index",
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
