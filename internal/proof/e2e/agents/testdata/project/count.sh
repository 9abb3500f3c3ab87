#!/bin/sh
# count prints how many words its input has.
wc -l | tr -d ' '
