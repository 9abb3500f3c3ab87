package protocol

// Limits on the files that a run stores as artifacts.
const (
	MaxArtifacts     = 20       // files
	MaxArtifactBytes = 10 << 20 // of one
)

// ArtifactTypes are the types of files that a run may store, by the ends of their names.
var ArtifactTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".txt": "text/plain", ".log": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".json": "application/json",
	".diff": "text/x-diff", ".patch": "text/x-diff", ".html": "text/html", ".xml": "application/xml",
}

// ArtifactAsk asks where a file that the agent of a live attempt has left may be stored.
type ArtifactAsk struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Name    string `json:"name"`
	Type    string `json:"type"` // one of ArtifactTypes
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
}

// ArtifactPlace answers ArtifactAsk: the address takes the bytes once, by PUT with the headers,
// and needs no credential.
type ArtifactPlace struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}
