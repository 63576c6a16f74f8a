"""Blocks of pages that follow from other files: permissions and limits from config/, figures from published results."""
