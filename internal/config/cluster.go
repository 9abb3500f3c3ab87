package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// The roles of a node.
const (
	RoleAPI     = "api"
	RoleLoops   = "loops"
	RoleGateway = "gateway"
)

var roles = []string{RoleAPI, RoleLoops, RoleGateway}

// settleCluster checks how several nodes share a database.
func (c *Config) settleCluster() error {
	if c.Cluster != "on" && c.Cluster != "off" {
		return fmt.Errorf("cluster (from %s): %q is neither on nor off", c.sources["cluster"], c.Cluster)
	}
	for _, role := range c.Roles() {
		if !slices.Contains(roles, role) {
			return fmt.Errorf("role (from %s): %q is none of %s", c.sources["role"], role, strings.Join(roles, ", "))
		}
	}
	if len(c.Roles()) == 0 {
		return fmt.Errorf("role (from %s): a node does at least one of %s", c.sources["role"], strings.Join(roles, ", "))
	}
	if c.Cluster == "off" {
		return nil
	}
	if strings.HasPrefix(c.Database, "sqlite:") {
		return fmt.Errorf("cluster (from %s): servers can share a PostgreSQL database only; name one with database", c.sources["cluster"])
	}
	if _, folder := c.BlobFolder(); folder {
		return fmt.Errorf("blob (from %s): is a folder, which other nodes of a cluster do not have; name a bucket (s3://…), or off", c.sources["blob"])
	}
	for _, of := range []struct{ key, is string }{{"nats-routes", c.NATSRoutes}, {"node-listen", c.NodeListen}} {
		host, port, err := net.SplitHostPort(of.is)
		if err != nil || port == "" {
			return fmt.Errorf("%s (from %s): %q has not the form host:port", of.key, c.sources[of.key], of.is)
		}
		if c.NodeHost == "" && (host == "" || net.ParseIP(host).IsUnspecified()) {
			return fmt.Errorf("%s (from %s): %q is every address of this machine; say with node-host which one other nodes reach",
				of.key, c.sources[of.key], of.is)
		}
	}
	if strings.ContainsAny(c.NodeHost, ":/ ") && net.ParseIP(c.NodeHost) == nil {
		return fmt.Errorf("node-host (from %s): %q is no name or address of a machine", c.sources["node-host"], c.NodeHost)
	}
	return nil
}

// Roles are what this node does.
func (c *Config) Roles() (out []string) {
	for role := range strings.SplitSeq(c.Role, ",") {
		if role = strings.TrimSpace(role); role != "" {
			out = append(out, role)
		}
	}
	return out
}

// Does tells whether this node has a role.
func (c *Config) Does(role string) bool { return slices.Contains(c.Roles(), role) }

// Reach is where other nodes reach what listens at an address.
func (c *Config) Reach(listens string) string {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return listens
	}
	if c.NodeHost != "" {
		host = c.NodeHost
	}
	return net.JoinHostPort(host, port)
}
