package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// BlobOff is the value of Blob for an installation that keeps no objects.
const BlobOff = "off"

const folderScheme = "folder:"

// settleBlob completes Blob: folder: and an absolute path, the address of a bucket, or
// BlobOff.
func (c *Config) settleBlob() error {
	path, isFolder := strings.CutPrefix(c.Blob, folderScheme)
	switch {
	case c.Blob == "":
		c.Blob = folderScheme + filepath.Join(c.Data, "blob")
	case isFolder && path != "":
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("blob (from %s): %w", c.sources["blob"], err)
		}
		c.Blob = folderScheme + abs
	case c.Blob == BlobOff, strings.HasPrefix(c.Blob, "s3://"), strings.HasPrefix(c.Blob, "s3+http://"):
	default:
		return fmt.Errorf("blob (from %s): is none of folder:PATH, s3://ACCESS:SECRET@HOST/BUCKET?region=REGION and off", c.sources["blob"])
	}
	return nil
}

// BlobFolder is the folder of the objects; false if they are kept elsewhere.
func (c *Config) BlobFolder() (path string, ok bool) { return strings.CutPrefix(c.Blob, folderScheme) }

// plainBlob tells whether a value is that of Blob and no secret.
func (c *Config) plainBlob(v string) bool {
	_, folder := c.BlobFolder()
	return v == c.Blob && (folder || v == BlobOff)
}
