package protocol

// Isolation is how a box keeps a run apart from itself.
type Isolation string

// Values lists all levels, the strongest first.
func (Isolation) Values() []string { return []string{"bubblewrap", "landlock", "none"} }

// LeastIsolation is what a box must offer at least: best is any level but none.
type LeastIsolation string

// Values lists what can be asked for, the weakest first.
func (LeastIsolation) Values() []string { return []string{"none", "best", "landlock", "bubblewrap"} }

// Transport is how a server of the Model Context Protocol is spoken to.
type Transport string

// Values lists both transports.
func (Transport) Values() []string { return []string{"http", "sse"} }

// FieldKind is what a run asks people to fill in.
type FieldKind string

// Kinds of fields.
const (
	FieldEnvSecret       = "env_secret"
	FieldServiceURL      = "service_url"
	FieldMCPServer       = "mcp_server"
	FieldOAuthConnection = "oauth_connection"
)

// Values lists all kinds.
func (FieldKind) Values() []string {
	return []string{FieldEnvSecret, FieldServiceURL, FieldMCPServer, FieldOAuthConnection}
}

// LeftKind is what was left out.
type LeftKind string

// Kinds of a LeftOut.
const (
	LeftFile       = "file"
	LeftRepository = "repository"
	LeftBranch     = "branch"
)

// Values lists all kinds.
func (LeftKind) Values() []string { return []string{LeftFile, LeftRepository, LeftBranch} }
