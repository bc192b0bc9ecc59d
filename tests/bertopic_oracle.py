"""BERTopic with the topics of a result, as an oracle."""

import warnings


def fit_bertopic(texts, vectors, labels, **options):
    """Return a BERTopic that has these labels, for vectors and with stages that do nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from bertopic import BERTopic
        from bertopic.backend import BaseEmbedder
        from bertopic.cluster import BaseCluster
        from bertopic.dimensionality import BaseDimensionalityReduction

        stages = {"embedding_model": BaseEmbedder(), "umap_model": BaseDimensionalityReduction(),
                  "hdbscan_model": BaseCluster()}  # fmt: skip
        model = BERTopic(**{**stages, **options}).fit(list(texts), vectors, y=labels)
    return model
