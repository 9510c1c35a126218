"""Mutation testing: is every change of the code that decides a certificate noticed by a test?"""
