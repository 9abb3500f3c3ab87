package vault

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/dial"
	"yardmaster/internal/lazy"
)

// The names of variables that no secret may have. Such a variable decides which
// programs, libraries or configuration a program runs with, or which servers it
// trusts, so a value under its name would take over every program that starts
// in the environment. Agents choose the names that people are asked for, which
// is why whole families of names are refused and not only the known ones.
// docs/secrets.md says so.
var (
	// never are prefixes of the variables of loaders, shells and programs that
	// have far too many to list.
	never = []string{"YARDMASTER_", "LD_", "DYLD_", "GIT_", "BASH_", "ZSH_", "GCONV_", "GLIBC_", "MALLOC_", "LUA_", "XDG_", "SUDO_",
		"SYSTEMD_", "CORECLR_", "COR_", "COMPLUS_"}
	// families are prefixes of tools that also have variables for secrets.
	// Those end in one of secretEnds and are allowed.
	families = []string{"NPM_CONFIG_", "YARN_", "PNPM_", "PYTHON", "PERL", "RUBY", "CARGO_", "RUST", "PIP_", "UV_", "POETRY_", "BUNDLE_",
		"GEM_", "COMPOSER_", "JAVA_", "JDK_", "_JAVA_", "MAVEN_", "GRADLE_", "SBT_",
		"SSL_", "OPENSSL_", "CURL_", "WGET", "SSH_", "GPG_", "GNUPG", "DOTNET_", "NODE_", "DENO_", "BUN_", "ELECTRON_", "ERL_", "ELIXIR_",
		"MIX_", "PHP_", "R_", "JULIA_", "TCL", "EMACS", "VIM", "LESS", "PROMPT_",
		"RES_", "CMAKE_", "MAKE", "CONDA_", "NIX_", "HOMEBREW_", "APT_", "DEB_", "TF_CLI_"}
	secretEnds = []string{"_TOKEN", "_KEY", "_SECRET", "_PASSWORD", "_PASSPHRASE", "_PASS", "_CREDENTIALS", "_CREDENTIAL", "_AUTH",
		"_USERNAME"}
	// ends are the ends of names by which many programs are told where they
	// look for files or how they run.
	ends = []string{"PATH", "HOME", "_PROXY", "_OPT", "_OPTS", "OPTIONS", "FLAGS", "_ARGS", "STARTUP", "PRELOAD", "_WRAPPER", "_COMMAND",
		"_CERT_FILE", "_CERT_DIR", "_CA_BUNDLE", "_CA_CERTS", "_HOOKS", "_SHELL", "_EDITOR", "_PAGER",
		"_ASKPASS", "_CONFIG_FILE", "_CONFIG_DIR", "_TLS_REJECT_UNAUTHORIZED", "_RUN_AS_NODE"}
	exact = []string{"USER", "LOGNAME", "SHELL", "ENV", "IFS", "TERM", "TERMCAP", "TERMINFO", "LANG", "LANGUAGE", "TZ", "TZDIR", "TMPDIR",
		"TMP", "TEMP", "PWD", "OLDPWD", "DISPLAY", "HOSTALIASES", "LOCALDOMAIN", "PS1", "PS2", "PS4",
		"EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "INPUTRC", "ZDOTDIR", "NETRC", "SSLKEYLOGFILE", "KUBECONFIG", "DOCKER_HOST",
		"DOCKER_CONFIG", "BUILDKIT_HOST", "GLOBIGNORE",
		"MFLAGS", "CC", "CXX", "CPP", "LD", "AR", "AS", "NM", "STRIP", "LINKER", "GOENV", "GOROOT", "GOPROXY", "GOSUMDB", "GONOSUMDB",
		"GONOSUMCHECK", "GOPRIVATE", "GOINSECURE", "GOTOOLCHAIN", "GOTOOLDIR", "GOCACHE", "GOMODCACHE", "GOAUTH",
		"PHPRC", "DEBUGINFOD_URLS", "LOADLIBRARY", "NLSPATH", "POSIXLY_CORRECT"}
)

// NameFault says why a secret cannot have a name. It is empty if the secret
// can.
func NameFault(name string) string {
	up := strings.ToUpper(name)
	begins := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(up, p) })
	}
	closes := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasSuffix(up, p) })
	}
	switch {
	case !namePattern.MatchString(name):
		return "must be the name of an environment variable: letters, digits and underscores, at most 100"
	case begins(never), closes(ends), slices.Contains(exact, up), strings.HasPrefix(up, "LC_"), begins(families) && !closes(secretEnds):
		return "is, or looks like, a variable that decides how programs run: choose another name"
	}
	return ""
}

var hostPattern = lazy.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+(:[0-9]{1,5})?$`)

// numeric matches a name whose last label no domain of the internet has: the
// name is an address in some spelling.
var numeric = lazy.New(`(^|\.)(0x[0-9a-f]*|[0-9]+)$`)

// hostFault says, in lower case, why the broker cannot send to a host. It is
// empty if the broker can. A name is not looked up: the box does so when it dials.
func hostFault(host string, g *dial.Guard) string {
	name, port, _ := strings.Cut(host, ":")
	if dial.Loopback(name) && !numeric.MatchString(name) { // an address may lie in a network that is allowed
		return dial.Unreachable
	}
	if !hostPattern.MatchString(host) {
		return "must be a full host name such as api.example.com, with a port if it is not 443"
	}
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port) {
		return "must have a port between 1 and 65535"
	}
	if strings.HasPrefix(name, "localhost.") || strings.HasSuffix(name, ".localdomain") {
		return dial.Unreachable
	}
	if !numeric.MatchString(name) {
		return ""
	}
	ip, err := netip.ParseAddr(name)
	switch {
	case err != nil:
		return "must be a host name, or an address of four numbers"
	case !g.Reaches(ip):
		return dial.Unreachable
	}
	return ""
}
