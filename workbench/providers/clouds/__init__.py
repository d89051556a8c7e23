"""Models at Azure OpenAI, Amazon Bedrock and Google Vertex. The vendors' SDKs build and sign the requests."""
