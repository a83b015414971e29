"""`make chaos`: a deployment of its own, harmed at random from a seed, and what must hold however it was harmed.

It looks from the outside: HTTP, rows by SQL, the payload folder, and an upstream that remembers all it was asked.
Nothing here imports the code that it checks, and nothing in production imports this.
"""
