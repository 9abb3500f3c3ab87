package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func environment(kv map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) {
		v, ok := kv[k]
		return v, ok
	}
}

// TestPrecedence checks that flags come before variables, variables before the file,
// the file before the defaults, and that each value has its source.
func TestPrecedence(t *testing.T) {
	data := t.TempDir()
	file := filepath.Join(data, "yardmaster.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:1\nqueue-cap: 7\nlog-level: warn\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment(map[string]string{"YARDMASTER_DATA": data, "YARDMASTER_QUEUE_CAP": "8", "YARDMASTER_LOG_LEVEL": "debug"})
	c, err := Load("serve", []string{"--log-level", "error"}, env, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:1" || c.QueueCap != 8 || c.LogLevel != "error" || c.LogFormat != "text" || c.Data != data {
		t.Errorf("config %+v", c)
	}
	var out bytes.Buffer
	c.Print(&out)
	for _, want := range []string{"# " + file, "# YARDMASTER_QUEUE_CAP", "# --log-level", "# default", "# YARDMASTER_DATA"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	env := environment(map[string]string{"YARDMASTER_DATA": t.TempDir(), "YARDMASTER_DATABASE": "postgres://u:hunter2@h/d",
		"YARDMASTER_SETUP_TOKEN": "hunter2"})
	c, err := Load("serve", nil, env, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.Print(&out)
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a secret is printed:\n%s", out.String())
	}
}

// TestMistakes checks that an error names the setting and its source.
func TestMistakes(t *testing.T) {
	data := t.TempDir()
	shared := func(flags ...string) []string {
		return append([]string{"--cluster", "on", "--database", "postgres://db/y", "--blob", "off"}, flags...)
	}
	file := filepath.Join(data, "c.yaml")
	if err := os.WriteFile(file, []byte("lisen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want []string
	}{
		"not a number":    {nil, map[string]string{"YARDMASTER_QUEUE_CAP": "many"}, []string{"queue-cap", "YARDMASTER_QUEUE_CAP", "many"}},
		"not a duration":  {[]string{"--lease", "60"}, nil, []string{"lease", "--lease"}},
		"too short":       {[]string{"--lease", "1ms"}, nil, []string{"lease"}},
		"unknown level":   {[]string{"--log-level", "loud"}, nil, []string{"log-level", "loud"}},
		"unknown key":     {[]string{"--config", file}, nil, []string{file, "lisen"}},
		"file missing":    {[]string{"--config", file + ".no"}, nil, []string{file + ".no"}},
		"stray argument":  {[]string{"now"}, nil, []string{"now"}},
		"no network":      {[]string{"--trusted-proxies", "10.0.0.0/8, 10.0.0.1"}, nil, []string{"trusted-proxies", "10.0.0.1"}},
		"half an app":     {[]string{"--github-client-id", "x"}, nil, []string{"github-client-secret"}},
		"no GitHub":       {[]string{"--github-url", "github.com"}, nil, []string{"github-url"}},
		"no repository":   {[]string{"--goals-repo", "acme/roadmap"}, nil, []string{"goals-repo", "acme/roadmap"}},
		"no switch":       {[]string{"--waitlist", "yes"}, nil, []string{"waitlist", "yes"}},
		"no headers":      {[]string{"--header-timeout", "0s"}, nil, []string{"header-timeout"}},
		"no port":         {[]string{"--own-origins", "https://a.example:0"}, nil, []string{"own-origins", "a.example:0"}},
		"any site":        {[]string{"--own-origins", "https://*"}, nil, []string{"own-origins", "https://*"}},
		"no own site":     {[]string{"--own-origins", "https://a.example/"}, nil, []string{"own-origins", "a.example/"}},
		"no site":         {[]string{"--mcp-origins", "https://a.example, b.example/x"}, nil, []string{"mcp-origins", "b.example/x"}},
		"no bodies":       {[]string{"--body-timeout", "-1s"}, nil, []string{"body-timeout"}},
		"any address":     {shared("--nats-routes", "0.0.0.0:4248"), nil, []string{"nats-routes", "0.0.0.0:4248", "node-host"}},
		"no address":      {shared("--node-listen", ":4249"), nil, []string{"node-listen", ":4249", "node-host"}},
		"no such role":    {[]string{"--role", "api,mail"}, nil, []string{"role", "mail"}},
		"no role":         {[]string{"--role", ","}, nil, []string{"role", "at least one"}},
		"negative seats":  {[]string{"--seats", "-1"}, nil, []string{"seats"}},
		"cap below minus": {[]string{"--queue-cap", "-2"}, nil, []string{"queue-cap"}},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"YARDMASTER_DATA": data}
			for k, v := range c.env {
				env[k] = v
			}
			_, err := Load("serve", c.args, environment(env), new(bytes.Buffer))
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %q", err, w)
				}
			}
		})
	}
}

// TestFileIsLiteral checks that a value in the file means the same as in a flag:
// digits stay digits, a list is joined by commas, and an empty value is not set.
func TestFileIsLiteral(t *testing.T) {
	data := t.TempDir()
	const file = "setup-token: 0123\nlisten:\nseats: 0x10\ntrusted-proxies: [10.0.0.0/8, 192.168.0.0/16]\nwaitlist: on\n"
	path := filepath.Join(data, "yardmaster.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(file, "0x10", "5", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment(map[string]string{"YARDMASTER_DATA": data})
	c, err := Load("serve", nil, env, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	if c.SetupToken != "0123" || c.Listen != "127.0.0.1:8080" || c.Seats != 5 ||
		c.Proxies.String() != "10.0.0.0/8,192.168.0.0/16" || c.Waitlist != "on" {
		t.Errorf("%+v", c)
	}
	for wrong, want := range map[string]string{file: `seats (from ` + path + `): "0x10" is not an integer`,
		"listen:\n  host: x\n": "line 2: listen must be a value"} {
		if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load("serve", nil, env, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestAddresses checks that an invalid address is refused at start.
func TestAddresses(t *testing.T) {
	env := environment(map[string]string{"YARDMASTER_DATA": t.TempDir()})
	for _, args := range [][]string{
		{"--base-url", "foo"}, {"--base-url", "ftp://x"}, {"--base-url", "https://x/path"},
		{"--listen", "8080"}, {"--listen", "127.0.0.1:"}, {"--nats-listen", "foo"},
		{"--metrics-listen", "9464"}, {"--otlp-endpoint", "127.0.0.1:4318"}, {"--otlp-endpoint", "http://u:p@127.0.0.1:4318"},
	} {
		if _, err := Load("serve", args, env, new(bytes.Buffer)); err == nil ||
			!strings.Contains(err.Error(), args[0][2:]+" (from "+args[0]+")") {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, args := range [][]string{{"--base-url", "https://x.example:8443/"}, {"--listen", ":8080"}, {"--nats-listen", "[::1]:0"},
		{"--metrics-listen", "127.0.0.1:0"}, {"--otlp-endpoint", "https://collector.example.com"}} {
		if _, err := Load("serve", args, env, new(bytes.Buffer)); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// Objects are kept below the data folder unless another place is named, and the keys of a
// bucket are not printed.
func TestBlob(t *testing.T) {
	data := t.TempDir()
	env := environment(map[string]string{"YARDMASTER_DATA": data})
	for given, want := range map[string]string{
		"": "folder:" + filepath.Join(data, "blob"), "off": "off", "folder:" + data: "folder:" + data, "s3://ID:hunter2@host/logs": "(set)",
		"s3+http://ID:hunter2@host/logs": "(set)",
	} {
		c, err := Load("serve", []string{"--blob", given}, env, new(bytes.Buffer))
		if err != nil {
			t.Errorf("%q: %v", given, err)
			continue
		}
		var out bytes.Buffer
		c.Print(&out)
		if !strings.Contains(out.String(), `"`+want+`"`) || strings.Contains(out.String(), "hunter2") {
			t.Errorf("%q: no %q in\n%s", given, want, out.String())
		}
		if path, ok := c.BlobFolder(); ok != strings.HasPrefix(want, "folder:") || ok && "folder:"+path != want {
			t.Errorf("%q: %q %v", given, path, ok)
		}
	}
	for _, bad := range []string{"on", "folder:", "/srv/blob", "https://ID:hunter2@host/logs"} {
		_, err := Load("serve", []string{"--blob", bad}, env, new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), "blob (from --blob)") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The program that prints the master key is a list of words, never a shell command.
func TestKeyCommand(t *testing.T) {
	data := t.TempDir()
	file := filepath.Join(data, "c.yaml")
	for text, want := range map[string]string{
		"master-key-command: age -d key.age\n":                   `["age","-d","key.age"]`,
		"master-key-command: [age, -d, 'my key, the new.age']\n": `["age","-d","my key, the new.age"]`,
		"master-key-command: '[\"age\", \"my key\"]'\n":          `["age","my key"]`,
		"master-key-command: '[\"age\"'\n":                       "in JSON",
		"master-key-command: [age, {a: b}]\n":                    "line 1: master-key-command",
		"master-key-command: age\nmaster-key-file: x\n":          "only one can be given",
		"audit-heads-every: 1ms\n":                               "must be at least 1s",
		"audit-heads-webhook: ftp://x\n":                         "is not an http address",
		"audit-heads-mail: a b@c\n":                              "is not an address",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load("serve", []string{"--config", file, "--data", data}, environment(nil), new(bytes.Buffer))
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v", text, err)
		case err == nil && c.KeyCommand.String() != want:
			t.Errorf("%q: %s", text, c.KeyCommand)
		}
	}
}
