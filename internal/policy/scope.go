package policy

import "strings"

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

// waits follows the words of a scope that no capability needs so far.
const waits = " (nothing needs it yet)"

// vocabulary lists every scope in the contract's order, with the words for what it lets
// its holder do. The words follow "may": the consent page shows them as such a list.
var vocabulary = []struct {
	scope Scope
	words string
}{
	{ReadAccount, "see the account, its members and its settings, and what you are notified of, with its text, and mark that as read"},
	{WriteAccount, "change the account's settings and what it allows, and make further tokens"},
	{WriteMembers, "let people in, change their roles, put them out"},
	{ReadRepos, "see repositories and their policies, and fetch their code"},
	{WriteRepos, "push code, also to default branches, and switch repositories on and off"},
	{ReadIssues, "see the issues of repositories, and what became of each"},
	{WriteIssues, "hand issues on to coding agents by a webhook, and escalate them"},
	{ReadPRs, "see pull requests, their changes and reviews, and what is asked about them"},
	{WritePRs, "approve, decline and make merges, and dismiss what reviews found"},
	{ReadTasks, "see tasks, plans, asks and schedules, what waits for a person, and what agents did"},
	{WriteTasks, "give agents work, which costs money, answer what it waits for, and stop it"},
	{ReadRunners, "see boxes, templates and prompts, and the checks that boxes ran"},
	{WriteRunners, "add and remove boxes, and say what runs on them and what it is told"},
	{ReadSessions, "see conversations with models, what they cost, and the audit record"},
	{WriteSessions, "talk to agents at work"},
	{ReadBilling, "see model keys, without their secrets, prices and budgets"},
	{WriteBilling, "add and remove model keys, and set prices and budgets"},
	{ReadUsage, "see what was spent on models, by day and by member"},
	{ReadDigests, "see the daily and weekly digests"},
	{ReadArtifacts, "see artifacts, and have their bytes"},
	{WriteArtifacts, "store artifacts, share them with anybody, and delete them"},
	{ReadKB, "see and search the knowledge base"},
	{WriteKB, "change the knowledge base, which agents read"},
	{ReadDashboards, "see boards of numbers, and on them what the other scopes show"},
	{WriteDashboards, "make, change and delete boards"},
	{ReadDonations, "see donations"},
	{WriteDonations, "give, take back and decline donations"},
	{ReadWebhooks, "see webhooks and integrations, and what was sent and received"},
	{WriteWebhooks, "have events sent to any address, and connect other systems whose messages become work"},
	{WriteSecrets, "set and delete the secrets that agents use, and list their names"},
	{SelfKeys, "change your own model keys and tokens of code hosts, and which boxes you lend"},
	{SelfPrompt, "change what agents are told for you"},
	{AdminReadPlat, "see the whole server, with its record and its deliveries"},
	{AdminReadOrgs, "see all accounts of the server"},
	{AdminReadUsers, "see all people of the server, those who wait to be let in, and mails"},
	{AdminReadRuns, "see the work of all accounts"},
	{AdminGoals, "rename goals of the server"},
	{AdminGrants, "give accounts capacity, and take it back"},
	{AdminUsers, "let people in and out of the server"},
	{AdminAccounts, "change all accounts of the server: their tier, seats, budget and roles"},
	{AdminReleases, "halt and restore the programs that boxes run"},
	{AdminBugs, "handle reports of bugs" + waits},
}

var bits = func() map[Scope]Set {
	m := make(map[Scope]Set, len(vocabulary))
	for i, v := range vocabulary {
		m[v.scope] = 1 << i
	}
	return m
}()

// Vocabulary lists every scope in the contract's order.
func Vocabulary() []Scope {
	out := make([]Scope, len(vocabulary))
	for i, v := range vocabulary {
		out[i] = v.scope
	}
	return out
}

// Words say what the scope lets its holder do, as they follow "may": "see issues".
// They are empty for an unknown scope.
func (s Scope) Words() string {
	for _, v := range vocabulary {
		if v.scope == s {
			return v.words
		}
	}
	return ""
}

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
	for i, v := range vocabulary {
		if s&(1<<i) != 0 {
			out = append(out, string(v.scope))
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

// Values lists the roles, from least to most.
func (Role) Values() []string {
	return []string{string(Viewer), string(Member), string(Admin), string(Owner)}
}

var ceilings = func() map[Role]Set {
	viewer := Scopes(SelfKeys, SelfPrompt)
	for _, s := range Vocabulary() {
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
