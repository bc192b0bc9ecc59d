"""The static encoder: a text's vector is the mean of its tokens' vectors, looked up in a table."""
