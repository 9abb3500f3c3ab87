package builtin

import "yardmaster/internal/codehost"

// Forge is the forge of the built-in host, which keeps repositories and nothing else:
// pull requests, reviews and checks of its repositories are rows of the domains alone.
type Forge struct{ codehost.NoForge }
