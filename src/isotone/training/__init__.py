"""Recipes, rows and the trainers that fit networks to them."""
