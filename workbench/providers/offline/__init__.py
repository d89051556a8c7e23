"""The offline model, which calls tools by matching words and needs no network."""
