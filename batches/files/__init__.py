"""OpenAI's Files API: uploads, reading, deletion and expiry. Contents are objects of the payload store."""
