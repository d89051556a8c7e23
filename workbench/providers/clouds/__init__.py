"""Models at Azure OpenAI, Amazon Bedrock and Google Vertex, whose requests the vendors' own SDKs make."""
