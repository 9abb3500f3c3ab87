// The pages: address, place and name in the rail, the key after g, the capability
// without which there is nothing to see, and the code.
import type { Call } from "./api";
import {
  accessRequestList, accountOrgsList, accountOssVerificationGet, accountPlatformOverview, accountPlatformRunGet,
  accountUsersList, askList, auditTail, billingKeysList, billingUsage, blockerList, boxList, ciFlakes, ciRuns,
  digestList, escalationList, integrationList, issueList, mailList, memberList, notificationList, orgSsoGet, planList,
  prAll, prPendingApprovals, prQueue, projectList, reviewList, scheduleList, secretList, sessionList, taskList,
  templateList, tokenList, webhookList,
} from "./client.gen";
import type { PageModule } from "./route";

export type Entry = {
  path: string;
  load: () => Promise<PageModule>;
  name?: string; // in the rail; pages of one object have none
  section?: string; // of the rail
  key?: string; // after g
  needs?: Pick<Call<never, unknown>, "scope">; // without its scope the page says which is missing
  operators?: boolean; // only for operators of the platform
};

export const pages: Entry[] = [
  { path: "/ui", name: "Home", key: "h", load: () => import("./pages/home") },
  { path: "/ui/tasks", name: "Tasks", section: "Work", key: "t", needs: taskList, load: () => import("./pages/tasks") },
  { path: "/ui/tasks/{id}", needs: taskList, load: () => import("./pages/task") },
  { path: "/ui/plans", name: "Plans", section: "Work", key: "p", needs: planList, load: () => import("./pages/plans") },
  { path: "/ui/plans/{id}", needs: planList, load: () => import("./pages/plan") },
  { path: "/ui/plans/fanouts/{id}", needs: planList, load: () => import("./pages/fanout") },
  { path: "/ui/prs", name: "Pull requests", section: "Work", key: "r", needs: prAll, load: () => import("./pages/prs") },
  { path: "/ui/prs/{id}", needs: prAll, load: () => import("./pages/pr") },
  { path: "/ui/approvals", name: "Approvals", section: "Work", key: "v", needs: prPendingApprovals, load: () => import("./pages/approvals") },
  { path: "/ui/asks", name: "Asks", section: "Work", key: "a", needs: askList, load: () => import("./pages/asks") },
  { path: "/ui/asks/{id}", needs: askList, load: () => import("./pages/ask") },
  { path: "/ui/escalations", name: "Escalations", section: "Work", key: "e", needs: escalationList, load: () => import("./pages/escalations") },
  { path: "/ui/escalations/{id}", needs: escalationList, load: () => import("./pages/escalation") },
  { path: "/ui/blockers", name: "Blockers", section: "Work", key: "b", needs: blockerList, load: () => import("./pages/blockers") },
  { path: "/ui/blockers/{id}", needs: blockerList, load: () => import("./pages/blocker") },
  { path: "/ui/notifications", name: "Inbox", section: "Work", key: "n", needs: notificationList, load: () => import("./pages/notifications") },
  { path: "/ui/boxes", name: "Boxes", section: "Fleet", key: "x", needs: boxList, load: () => import("./pages/boxes") },
  { path: "/ui/boxes/{id}", needs: boxList, load: () => import("./pages/box") },
  { path: "/ui/ci", name: "CI runs", section: "Fleet", key: "c", needs: ciRuns, load: () => import("./pages/ci") },
  { path: "/ui/templates", name: "Templates", section: "Fleet", needs: templateList, load: () => import("./pages/templates") },
  { path: "/ui/repos", name: "Repositories", section: "Knowledge", key: "o", needs: projectList, load: () => import("./pages/repos") },
  { path: "/ui/repos/{owner}/{repo}", needs: projectList, load: () => import("./pages/repo") },
  { path: "/ui/digests", name: "Digests", section: "Knowledge", needs: digestList, load: () => import("./pages/digests") },
  { path: "/ui/digests/{id}", needs: digestList, load: () => import("./pages/digest") },
  { path: "/ui/docs", name: "Manual", section: "Knowledge", key: "m", load: () => import("./pages/manual") },
  { path: "/ui/docs/{name}", load: () => import("./pages/document") },
  { path: "/ui/repos/{owner}/{repo}/issues", needs: issueList, load: () => import("./pages/issues") },
  { path: "/ui/repos/{owner}/{repo}/issues/{id}", needs: issueList, load: () => import("./pages/issue") },
  { path: "/ui/repos/{owner}/{repo}/merge-queue", needs: prQueue, load: () => import("./pages/mergequeue") },
  { path: "/ui/repos/{owner}/{repo}/flakes", needs: ciFlakes, load: () => import("./pages/flakes") },
  { path: "/ui/repos/{owner}/{repo}/reviews", needs: reviewList, load: () => import("./pages/reviews") },
  { path: "/ui/sessions", name: "Sessions", section: "Insight", key: "s", needs: sessionList, load: () => import("./pages/sessions") },
  { path: "/ui/sessions/{id}", needs: sessionList, load: () => import("./pages/session") },
  { path: "/ui/usage", name: "Usage and budgets", section: "Insight", key: "u", needs: billingUsage, load: () => import("./pages/usage") },
  { path: "/ui/audit", name: "Audit", section: "Insight", key: "l", needs: auditTail, load: () => import("./pages/audit") },
  { path: "/ui/call/{id}", load: () => import("./pages/call") },
  { path: "/ui/settings", name: "You", section: "Settings", key: ",", load: () => import("./pages/settings/you") },
  { path: "/ui/settings/account", name: "Account", section: "Settings", load: () => import("./pages/settings/account") },
  { path: "/ui/settings/members", name: "Members", section: "Settings", needs: memberList, load: () => import("./pages/settings/members") },
  { path: "/ui/settings/tokens", name: "Tokens", section: "Settings", needs: tokenList, load: () => import("./pages/settings/tokens") },
  { path: "/ui/settings/keys", name: "Keys", section: "Settings", needs: billingKeysList, load: () => import("./pages/settings/keys") },
  { path: "/ui/settings/sso", name: "Single sign-on", section: "Settings", needs: orgSsoGet, load: () => import("./pages/settings/sso") },
  { path: "/ui/settings/webhooks", name: "Webhooks", section: "Settings", needs: webhookList, load: () => import("./pages/settings/webhooks") },
  { path: "/ui/settings/secrets", name: "Secrets", section: "Settings", needs: secretList, load: () => import("./pages/settings/secrets") },
  { path: "/ui/settings/integrations", name: "Integrations", section: "Settings", needs: integrationList, load: () => import("./pages/settings/integrations") },
  { path: "/ui/settings/integrations/{id}", needs: integrationList, load: () => import("./pages/settings/integration") },
  { path: "/ui/settings/notifications", name: "Notifications", section: "Settings", load: () => import("./pages/settings/notifications") },
  { path: "/ui/settings/schedules", name: "Schedules", section: "Settings", needs: scheduleList, load: () => import("./pages/settings/schedules") },
  { path: "/ui/settings/oss", name: "Open source", section: "Settings", needs: accountOssVerificationGet, load: () => import("./pages/settings/oss") },
  { path: "/ui/platform", name: "Overview", section: "Platform", operators: true, needs: accountPlatformOverview, load: () => import("./pages/platform/overview") },
  { path: "/ui/platform/accounts", name: "Accounts", section: "Platform", operators: true, needs: accountOrgsList, load: () => import("./pages/platform/accounts") },
  { path: "/ui/platform/accounts/{id}", operators: true, needs: accountOrgsList, load: () => import("./pages/platform/account") },
  { path: "/ui/platform/users", name: "Users", section: "Platform", operators: true, needs: accountUsersList, load: () => import("./pages/platform/users") },
  { path: "/ui/platform/users/{id}", operators: true, needs: accountUsersList, load: () => import("./pages/platform/user") },
  { path: "/ui/platform/requests", name: "Requests", section: "Platform", operators: true, needs: accessRequestList, load: () => import("./pages/platform/people") },
  { path: "/ui/platform/trail", name: "Trail", section: "Platform", operators: true, needs: accountPlatformOverview, load: () => import("./pages/platform/trail") },
  { path: "/ui/platform/goals", name: "Goals", section: "Platform", operators: true, needs: accountPlatformOverview, load: () => import("./pages/platform/goals") },
  { path: "/ui/platform/runs", name: "Runs", section: "Platform", operators: true, needs: accountPlatformRunGet, load: () => import("./pages/platform/runs") },
  { path: "/ui/platform/mail", name: "Mail", section: "Platform", operators: true, needs: mailList, load: () => import("./pages/platform/mail") },
  { path: "/ui/platform/hosts", name: "Code hosts", section: "Platform", operators: true, needs: accountPlatformOverview, load: () => import("./pages/platform/hosts") },
];
