package acp

import "encoding/json"

// ProtocolVersion is the only version that this package supports. An agent's answer
// proves little, because some agents repeat any version that they are asked for.
const ProtocolVersion = 1

// The methods of the protocol.
const (
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodSetMode    = "session/set_mode"
	methodSetModel   = "session/set_model"
	methodSetConfig  = "session/set_config_option"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodUpdate     = "session/update"
	methodPermission = "session/request_permission"
)

// The stop reasons of a turn.
const (
	StopEndTurn     = "end_turn"
	StopMaxTokens   = "max_tokens"
	StopMaxRequests = "max_turn_requests"
	StopRefusal     = "refusal"
	StopCancelled   = "cancelled"
)

// The kinds of session updates that this program reads; there are more.
const (
	UpdateMessageChunk   = "agent_message_chunk"
	UpdateThoughtChunk   = "agent_thought_chunk"
	UpdateToolCall       = "tool_call"
	UpdateToolCallUpdate = "tool_call_update"
)

// The states of a tool call.
const (
	ToolPending    = "pending"
	ToolInProgress = "in_progress"
	ToolCompleted  = "completed"
	ToolFailed     = "failed"
)

// The kinds of permission options.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// Implementation names a client or an agent.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// ClientCapabilities says what the client does for the agent. This client offers
// neither files nor terminals, because the checkout is local to the agent.
type ClientCapabilities struct {
	FS struct {
		ReadTextFile  bool `json:"readTextFile"`
		WriteTextFile bool `json:"writeTextFile"`
	} `json:"fs"`
	Terminal bool `json:"terminal"`
}

// InitializeRequest opens a connection.
type InitializeRequest struct {
	ProtocolVersion    int                `json:"protocolVersion"`
	ClientCapabilities ClientCapabilities `json:"clientCapabilities"`
	ClientInfo         *Implementation    `json:"clientInfo,omitempty"`
}

// AgentCapabilities is the part of an agent's capabilities that this client uses.
// Without Resume the agent cannot resume a session without a replay.
type AgentCapabilities struct {
	LoadSession bool `json:"loadSession"`
	MCP         struct {
		HTTP bool `json:"http"`
		SSE  bool `json:"sse"`
	} `json:"mcpCapabilities"` // transports besides stdio
	SessionCapabilities struct {
		Resume *struct{} `json:"resume,omitempty"`
	} `json:"sessionCapabilities"`
}

// InitializeResult is the agent's answer to InitializeRequest.
type InitializeResult struct {
	ProtocolVersion   int               `json:"protocolVersion"`
	AgentCapabilities AgentCapabilities `json:"agentCapabilities"`
	AgentInfo         *Implementation   `json:"agentInfo,omitempty"`
	AuthMethods       []json.RawMessage `json:"authMethods"`
}

// The transports of an MCPServer.
const (
	TransportHTTP = "http" // streamable HTTP
	TransportSSE  = "sse"
)

// MCPServer is an MCP server that the agent has to connect to for a session.
type MCPServer struct {
	Type    string       `json:"type"`
	Name    string       `json:"name"`
	URL     string       `json:"url"`
	Headers []HTTPHeader `json:"headers"` // required, may be empty
}

// HTTPHeader is a header of each request to a server.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SessionRequest opens a session; with SessionID it loads or resumes one.
type SessionRequest struct {
	SessionID  string      `json:"sessionId,omitempty"`
	Cwd        string      `json:"cwd"`
	MCPServers []MCPServer `json:"mcpServers"`
}

// Session is an agent's answer that a session is open, with the available choices.
// The answers to load and resume contain no id; Client fills it in.
type Session struct {
	SessionID string         `json:"sessionId,omitempty"`
	Modes     *Modes         `json:"modes,omitempty"`
	Models    *Models        `json:"models,omitempty"`
	Config    []ConfigOption `json:"configOptions,omitempty"`
}

// Modes lists an agent's modes of operation.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// Mode is one mode of operation.
type Mode struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Models lists the models of an agent that uses session/set_model.
type Models struct {
	Current   string  `json:"currentModelId"`
	Available []Model `json:"availableModels"`
}

// Model is one model.
type Model struct {
	ID   string `json:"modelId"`
	Name string `json:"name"`
}

// ConfigOption is one setting of a session. Category is "mode", "model" or
// "thought_level". The current value is raw, because options that are not a choice
// have booleans.
type ConfigOption struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Category string          `json:"category,omitempty"`
	Type     string          `json:"type"`
	Current  json.RawMessage `json:"currentValue"`
	Options  []ConfigValue   `json:"options,omitempty"`
}

// ConfigValue is a possible value of an option, or a named group of values.
type ConfigValue struct {
	Value   string        `json:"value,omitempty"`
	Name    string        `json:"name"`
	Options []ConfigValue `json:"options,omitempty"`
}

// Values lists the values of the option, including those in groups.
func (o ConfigOption) Values() []string { return flatten(nil, o.Options) }

func flatten(out []string, values []ConfigValue) []string {
	for _, v := range values {
		if v.Value != "" {
			out = append(out, v.Value)
		}
		out = flatten(out, v.Options)
	}
	return out
}

// Selected returns the current value of an option that is a choice, else "".
func (o ConfigOption) Selected() string {
	var s string
	if json.Unmarshal(o.Current, &s) != nil {
		return ""
	}
	return s
}

// ContentBlock is a block of text; of other kinds of content only the type is kept.
type ContentBlock struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
}

// Text returns a block of text.
func Text(s string) ContentBlock { return ContentBlock{Type: "text", Text: s} }

// PromptRequest starts a turn.
type PromptRequest struct {
	SessionID string         `json:"sessionId"`
	Prompt    []ContentBlock `json:"prompt"`
}

// PromptResult ends a turn.
type PromptResult struct {
	StopReason string `json:"stopReason"`
}

// PermissionRequest asks whether a tool call may run.
type PermissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  json.RawMessage    `json:"toolCall"`
	Options   []PermissionOption `json:"options"`
}

// PermissionOption is one possible answer.
type PermissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// PermissionOutcome is the answer: "selected" with an option, or "cancelled".
type PermissionOutcome struct {
	Outcome  string `json:"outcome"`
	OptionID string `json:"optionId,omitempty"`
}

type permissionResult struct {
	Outcome PermissionOutcome `json:"outcome"`
}

// Selected returns the answer that selects an option.
func Selected(optionID string) PermissionOutcome {
	return PermissionOutcome{Outcome: "selected", OptionID: optionID}
}

// Cancelled returns the answer that the turn was cancelled before a choice was
// made.
func Cancelled() PermissionOutcome { return PermissionOutcome{Outcome: "cancelled"} }

type update struct {
	SessionID string          `json:"sessionId"`
	Update    json.RawMessage `json:"update"`
}

type sessionChoice struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId,omitempty"`
	ModelID   string `json:"modelId,omitempty"`
	ConfigID  string `json:"configId,omitempty"`
	Value     string `json:"value,omitempty"`
}
