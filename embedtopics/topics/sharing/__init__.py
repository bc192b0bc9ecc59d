"""Results for others: without their texts, with a page of introduction, on the Hugging Face hub."""
