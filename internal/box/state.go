package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"yardmaster/internal/id"
)

// commandsRemembered is how many commands the box recognises when they come again.
// Each comes twice: once at once, once from the durable queue.
const commandsRemembered = 1024

// memory is the state that a box keeps across restarts, besides its runs.
type memory struct {
	path string

	mu   sync.Mutex
	data struct {
		Draining bool     `json:"draining"`
		Claim    string   `json:"claim"` // id of the outstanding claim
		Seen     []string `json:"seen"`  // ids of the commands taken, oldest first
	}
}

func openMemory(dataDir string) (*memory, error) {
	m := &memory{path: filepath.Join(dataDir, "box.json")}
	if err := readJSON(m.path, &m.data); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return m, nil
}

func (m *memory) draining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Draining
}

func (m *memory) setDraining(on bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data.Draining == on {
		return nil
	}
	m.data.Draining = on
	return writeJSON(m.path, m.data)
}

// claim returns the id to claim with. It stays the same until claimed is called, so
// that a claim whose answer was lost brings the same run again.
func (m *memory) claim() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data.Claim != "" {
		return m.data.Claim, nil
	}
	m.data.Claim = id.New()
	if err := writeJSON(m.path, m.data); err != nil {
		// Without a record there is no claim: a box with a full disk takes no work.
		m.data.Claim = ""
		return "", fmt.Errorf("keep the claim: %w", err)
	}
	return m.data.Claim, nil
}

// claimed notes that the run of the claim is on disk, which uses the claim up.
func (m *memory) claimed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Claim = ""
	return writeJSON(m.path, m.data)
}

func (m *memory) knows(command string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.data.Seen, command)
}

func (m *memory) remember(command string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Seen = append(m.data.Seen, command)
	if over := len(m.data.Seen) - commandsRemembered; over > 0 {
		m.data.Seen = slices.Delete(m.data.Seen, 0, over)
	}
	return writeJSON(m.path, m.data)
}
