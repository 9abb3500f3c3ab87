#!/bin/sh
# slug TEXT: prints TEXT as a name that is safe in an address.
printf '%s\n' "$1" | tr ' ' '-'
