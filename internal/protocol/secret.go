package protocol

// SecretsAsk asks for what a live attempt may use of the vaults. Key is the
// public half of a key pair that the box's process has made for the attempt and
// keeps nowhere: what comes is sealed to it. An attempt's first key is its only
// one.
type SecretsAsk struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Key     string `json:"key"`
}

// Secrets is the answer: a list of Secret in JSON, sealed to the key for the
// purpose SecretsPurpose.
type Secrets struct {
	Sealed string `json:"sealed"`
}

// SecretsPurpose binds what is sealed to its run.
func SecretsPurpose(run string) string { return "run-secrets/" + run }

// Secret is one value. It never travels or rests but sealed.
type Secret struct {
	Name     string   `json:"name"` // of the environment variable, for DeliverEnv
	Delivery string   `json:"delivery"`
	Value    []byte   `json:"value"`
	Hosts    []string `json:"hosts,omitempty"` // DeliverBroker: host, or host:port unless it is 443
	Header   string   `json:"header,omitempty"`
	Prefix   string   `json:"prefix,omitempty"` // before the value in the header
}

// Deliveries of a Secret.
const (
	DeliverEnv    = "env"    // the agent has it in its environment
	DeliverBroker = "broker" // the box adds it to requests to Hosts; the agent never has it
)
