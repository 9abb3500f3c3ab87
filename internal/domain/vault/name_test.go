package vault

import (
	"net/netip"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

func TestNamesThatDecideHowProgramsRun(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(`PATH HOME LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT GIT_SSH_COMMAND GIT_CONFIG_COUNT GIT_EXEC_PATH NODE_OPTIONS
		NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED BASH_ENV BASH_FUNC_ls ENV GCONV_PATH RUBYLIB
		RUBYOPT PYTHONHOME PYTHONPATH PYTHONSTARTUP PYTHONINSPECT PYTHONUSERBASE PERL5DB PERL5LIB PERL5OPT PERLLIB
		_JAVA_OPTIONS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS JAVA_HOME CLASSPATH MAVEN_OPTS GRADLE_OPTS SSL_CERT_FILE
		SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE AWS_CA_BUNDLE OPENSSL_CONF OPENSSL_MODULES MAKEFLAGS MFLAGS
		MAKEFILES CFLAGS LDFLAGS CC CXX RUSTC RUSTC_WRAPPER RUSTFLAGS CARGO_HOME CARGO_BUILD_RUSTC GOFLAGS GOPATH
		GOROOT GOPROXY GOTOOLCHAIN npm_config_script_shell NPM_CONFIG_REGISTRY NPM_CONFIG_USERCONFIG PIP_INDEX_URL
		PIP_CONFIG_FILE EDITOR GIT_EDITOR VISUAL PAGER LESSOPEN BROWSER SSH_ASKPASS SUDO_ASKPASS SSH_AUTH_SOCK
		KUBECONFIG DOCKER_HOST HTTPS_PROXY http_proxy ALL_PROXY NO_PROXY HOSTALIASES RES_OPTIONS LOCALDOMAIN TMPDIR
		IFS PS4 PROMPT_COMMAND XDG_CONFIG_HOME DYLD_INSERT_LIBRARIES ZDOTDIR LUA_INIT PHPRC PHP_INI_SCAN_DIR
		DOTNET_STARTUP_HOOKS CORECLR_PROFILER ELECTRON_RUN_AS_NODE YARDMASTER_SECRETS_URL GLIBC_TUNABLES MALLOC_CHECK_
		LC_ALL TERMINFO SSLKEYLOGFILE R_PROFILE_USER ERL_FLAGS GNUPGHOME`) {
		if NameFault(name) == "" {
			t.Errorf("%s is a secret", name)
		}
		if NameFault(strings.ToLower(name)) == "" {
			t.Errorf("%s is a secret", strings.ToLower(name))
		}
	}
	for _, name := range strings.Fields(`DATABASE_URL API_KEY STRIPE_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY GITHUB_TOKEN GH_TOKEN NPM_TOKEN
		NODE_AUTH_TOKEN CARGO_REGISTRY_TOKEN RUBYGEMS_API_KEY PGPASSWORD POSTGRES_DB POSTGRES_USER MYSQL_PWD REDIS_URL
		SENTRY_DSN OPENAI_API_KEY SSH_PRIVATE_KEY SSL_KEY GOOGLE_APPLICATION_CREDENTIALS JWT_SECRET SMTP_PASSWORD
		MCP_TRACKER_TOKEN A B SERVICE_URL GPG_PASSPHRASE POETRY_PYPI_TOKEN_PYPI_TOKEN TF_VAR_db_password
		WEBHOOK_SECRET MAKE_TOKEN`) {
		if why := NameFault(name); why != "" {
			t.Errorf("%s %s", name, why)
		}
	}
}

func TestHostsOfTheBroker(t *testing.T) {
	t.Parallel()
	for _, h := range strings.Fields(`127.0.0.1 127.0.0.1:8443 127.1 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1:443 169.254.169.254 100.64.0.1
		224.0.0.1 255.255.255.255 0x7f.0.0.1 0177.0.0.1 127.0.0.01 1.2.3 x.2130706433 localhost localhost.localdomain
		a.localhost localhost:80 a.localdomain api.example.com:0 api.example.com:99999 api.example.com:65536
		api.example.com:080 x:99999 [::1] [::1]:80 ::1 fe80::1 2130706433 api https://api.example.com
		api.example.com/x user@api.example.com *.example.com api..example.com -a.example.com`) {
		if hostFault(h, dial.NewGuard(nil)) == "" {
			t.Errorf("the broker may be told of %s", h)
		}
	}
	for _, h := range []string{"localhost", "localhost:80", "a.localhost"} {
		if why := hostFault(h, dial.NewGuard(nil)); why != dial.Unreachable {
			t.Errorf("%s %s", h, why)
		}
	}
	for _, h := range []string{"api.example.com", "api.example.com:8443", "api.example.com:65535", "8.8.8.8", "8.8.8.8:853",
		"1.example.com",
		"a-b.example.co.uk", "localhost-of.example.com"} {
		if why := hostFault(h, dial.NewGuard(nil)); why != "" {
			t.Errorf("%s %s", h, why)
		}
	}
	allowed := dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	machine := dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if hostFault("127.0.0.1:8443", machine) != "" || hostFault("localhost", machine) == "" {
		t.Error("this machine is not reached where the operator allows it, or by its name")
	}
	if hostFault("10.1.2.3:8443", allowed) != "" || hostFault("10.2.0.1", allowed) == "" {
		t.Error("the operator's networks do not count, or others do")
	}
}

func TestHostsAreRefusedWhenSet(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, in func(func(*db.Tx) error) error) {
		err := in(func(tx *db.Tx) error {
			return s.Put(tx, "test", Item{Name: "KEY", Value: "a long value", Delivery: protocol.DeliverBroker,
				Hosts: []string{"api.example.com", "169.254.169.254"}})
		})
		if f := fault.From(err); err == nil || f.Kind != fault.Invalid || len(f.Fields["hosts.1"]) != 1 || len(f.Fields["hosts.0"]) != 0 {
			t.Errorf("%v", err)
		}
		if err := in(func(tx *db.Tx) error { return s.Put(tx, "test", Item{Name: "GCONV_PATH", Value: "x"}) }); err == nil {
			t.Error("a variable that decides how programs run was taken")
		}
		if err := in(func(tx *db.Tx) error {
			return s.PutFilled(tx, "test", Item{Name: "T", Value: "a long value"}, "127.0.0.1:1")
		}); err == nil {
			t.Error("a form made the broker send to this machine")
		}
	})
}
