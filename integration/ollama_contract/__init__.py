"""Ollama's part, played: how it finds devices, starts llama-server, reads its log and ends it.

What it does is written from the source of Ollama of 2026-08 (``discover``, ``llm``, ``server/sched.go``); no
Ollama runs here. llama-server and its libraries are real.
"""
