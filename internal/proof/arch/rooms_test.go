package arch

// rooms says which packages those of the command line may import. What stands on a line may import the rooms
// above it.
var rooms = map[string]string{
	"cli/object":     "client lazy terminal",
	"cli/exit":       "client",
	"cli/screen":     "client terminal",
	"cli/table":      "cli/object cli/screen client money terminal",
	"cli/draft":      "client terminal",
	"cli/signin":     "cli/exit client terminal",
	"cli/output":     "cli/exit cli/object cli/screen client stencil terminal",
	"cli/capability": "app cli/exit cli/object terminal",
	"cli/tree":       "cli/capability cli/draft cli/exit cli/output cli/screen cli/signin client terminal",
	"cli/change":     "cli/screen cli/signin cli/table cli/tree client terminal",
	"cli/noun": "cli/capability cli/change cli/exit cli/object cli/output cli/screen cli/signin cli/table cli/tree client lazy " +
		"terminal",
	"cli/act": "app cli/capability cli/draft cli/exit cli/noun cli/object cli/output cli/screen cli/signin cli/tree client lazy " +
		"terminal",
	"cli/shelf": "client",
	"cli/machine": "app box bundle box/coder box/program cli/capability cli/exit cli/output cli/screen cli/signin cli/table cli/tree client config event/hashchain lazy " +
		"demo rlimit seal",
	"cli": "app attestation box cli/act cli/capability cli/change cli/draft cli/exit cli/machine cli/noun cli/object cli/output cli/screen " +
		"cli/shelf cli/signin cli/table cli/tree client lazy mail money proxies terminal version",
}
