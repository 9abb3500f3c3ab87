package policy

import (
	"slices"
	"strings"
)

// Scope is one right in the vocabulary of the contract (document one,
// section 5, item 10).
type Scope string

// All scopes. A Set keeps its members as bits in this order.
const (
	ReadAccount     Scope = "read:account"
	WriteAccount    Scope = "write:account"
	WriteMembers    Scope = "write:members"
	ReadRepos       Scope = "read:repos"
	WriteRepos      Scope = "write:repos"
	ReadIssues      Scope = "read:issues"
	WriteIssues     Scope = "write:issues"
	ReadPRs         Scope = "read:prs"
	WritePRs        Scope = "write:prs"
	ReadTasks       Scope = "read:tasks"
	WriteTasks      Scope = "write:tasks"
	ReadRunners     Scope = "read:runners"
	WriteRunners    Scope = "write:runners"
	ReadSessions    Scope = "read:sessions"
	WriteSessions   Scope = "write:sessions"
	ReadBilling     Scope = "read:billing"
	WriteBilling    Scope = "write:billing"
	ReadUsage       Scope = "read:usage"
	ReadDigests     Scope = "read:digests"
	ReadArtifacts   Scope = "read:artifacts"
	WriteArtifacts  Scope = "write:artifacts"
	ReadKB          Scope = "read:kb"
	WriteKB         Scope = "write:kb"
	ReadDashboards  Scope = "read:dashboards"
	WriteDashboards Scope = "write:dashboards"
	ReadDonations   Scope = "read:donations"
	WriteDonations  Scope = "write:donations"
	ReadWebhooks    Scope = "read:webhooks"
	WriteWebhooks   Scope = "write:webhooks"
	WriteSecrets    Scope = "write:secrets"
	SelfKeys        Scope = "write:self:keys"
	SelfPrompt      Scope = "write:self:prompt"
	AdminReadPlat   Scope = "admin:read:platform"
	AdminReadOrgs   Scope = "admin:read:orgs"
	AdminReadUsers  Scope = "admin:read:users"
	AdminReadRuns   Scope = "admin:read:runs"
	AdminGoals      Scope = "admin:goals"
	AdminGrants     Scope = "admin:grants"
	AdminUsers      Scope = "admin:users"
	AdminAccounts   Scope = "admin:accounts"
	AdminReleases   Scope = "admin:releases"
	AdminBugs       Scope = "admin:bugs"
)

var vocabulary = []Scope{
	ReadAccount, WriteAccount, WriteMembers, ReadRepos, WriteRepos, ReadIssues, WriteIssues, ReadPRs, WritePRs,
	ReadTasks, WriteTasks, ReadRunners, WriteRunners, ReadSessions, WriteSessions, ReadBilling, WriteBilling,
	ReadUsage, ReadDigests, ReadArtifacts, WriteArtifacts, ReadKB, WriteKB, ReadDashboards, WriteDashboards,
	ReadDonations, WriteDonations, ReadWebhooks, WriteWebhooks, WriteSecrets, SelfKeys, SelfPrompt,
	AdminReadPlat, AdminReadOrgs, AdminReadUsers, AdminReadRuns,
	AdminGoals, AdminGrants, AdminUsers, AdminAccounts, AdminReleases, AdminBugs,
}

var bits = func() map[Scope]Set {
	m := make(map[Scope]Set, len(vocabulary))
	for i, s := range vocabulary {
		m[s] = 1 << i
	}
	return m
}()

// Vocabulary lists every scope in the contract's order.
func Vocabulary() []Scope { return slices.Clone(vocabulary) }

// Set is a set of scopes.
type Set uint64

// Scopes makes a set. It ignores unknown names; see ParseScopes.
func Scopes(list ...Scope) (s Set) {
	for _, x := range list {
		s |= bits[x]
	}
	return s
}

// ParseScopes makes a set of names from a request, and returns the unknown names.
func ParseScopes(names []string) (s Set, unknown []string) {
	for _, n := range names {
		b, ok := bits[Scope(n)]
		if !ok {
			unknown = append(unknown, n)
		}
		s |= b
	}
	return s, unknown
}

// Has tells whether s contains every scope of other.
func (s Set) Has(other Set) bool { return s&other == other }

// Names lists the members of a set in the order of Vocabulary.
func (s Set) Names() []string {
	out := []string{}
	for i, n := range vocabulary {
		if s&(1<<i) != 0 {
			out = append(out, string(n))
		}
	}
	return out
}

// Role is a member's place in an account.
type Role string

// The roles, from least to most.
const (
	Viewer Role = "viewer"
	Member Role = "member"
	Admin  Role = "admin"
	Owner  Role = "owner"
)

var ceilings = func() map[Role]Set {
	viewer := Scopes(SelfKeys, SelfPrompt)
	for _, s := range vocabulary {
		if strings.HasPrefix(string(s), "read:") && s != ReadBilling && s != ReadUsage {
			viewer |= bits[s]
		}
	}
	member := viewer | Scopes(ReadUsage, WriteIssues, WritePRs, WriteTasks, WriteSessions, WriteArtifacts, WriteKB, WriteDashboards,
		WriteDonations)
	admin := member | Scopes(ReadBilling, WriteAccount, WriteMembers, WriteRepos, WriteRunners, WriteWebhooks, WriteSecrets)
	owner := admin | Scopes(WriteBilling)
	return map[Role]Set{Viewer: viewer, Member: member, Admin: admin, Owner: owner}
}()

// Ceiling returns the largest set of scopes that a credential of a member with this
// role can hold. It is empty for an unknown role.
func (r Role) Ceiling() Set { return ceilings[r] }

// PlatformRead are the scopes that the ordinary credentials of an operator have in
// addition.
var PlatformRead = Scopes(AdminReadPlat, AdminReadOrgs, AdminReadUsers, AdminReadRuns)

// OperatorOnly are the scopes that only an operator token may carry.
var OperatorOnly = Scopes(AdminGoals, AdminGrants, AdminUsers, AdminAccounts, AdminReleases, AdminBugs)
