-- +goose Up

-- The knowledge base of repositories. A page is found by its repository, which is found within an
-- account. Slugs and words are compared by their bytes, as SQLite does.
CREATE TABLE kb_pages (
  repo_id     TEXT NOT NULL REFERENCES repos (id),
  slug        TEXT COLLATE "C" NOT NULL,
  ord         BIGINT NOT NULL,             -- its number in the lists; never used twice
  title       TEXT NOT NULL,
  links       TEXT NOT NULL,               -- slugs, as they were sent
  commit_sha  TEXT NOT NULL,               -- from which it was written; '' if nobody said
  files       TEXT NOT NULL,               -- paths from which it was written
  run_id      TEXT,                        -- the run that wrote it
  kept        TEXT NOT NULL,               -- the paragraphs that people wrote: base64 of bits
  version     BIGINT NOT NULL,
  seen_sha    TEXT NOT NULL,               -- up to this commit the files are as they were; '': not looked at
  stale_at    BIGINT,                      -- since when a file of it is another one
  stale_sha   TEXT NOT NULL DEFAULT '',
  stale_files TEXT NOT NULL DEFAULT '[]',
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  updated_by  TEXT NOT NULL,
  body        TEXT NOT NULL,
  PRIMARY KEY (repo_id, slug)
);
-- Date and slug of a page are read by its number, without its text.
CREATE UNIQUE INDEX kb_pages_ord ON kb_pages (repo_id, ord, updated_at, slug);

-- What a page was before it was replaced.
CREATE TABLE kb_versions (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  slug       TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  title      TEXT NOT NULL,
  links      TEXT NOT NULL,
  commit_sha TEXT NOT NULL,
  files      TEXT NOT NULL,
  run_id     TEXT,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL,
  body       TEXT NOT NULL,
  PRIMARY KEY (repo_id, slug, version)
);

-- Which pages a page leads to, by its links and in its text.
CREATE TABLE kb_links (
  repo_id TEXT NOT NULL REFERENCES repos (id),
  target  TEXT COLLATE "C" NOT NULL,
  slug    TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (repo_id, target, slug)
);
CREATE INDEX kb_links_slug ON kb_links (repo_id, slug);

-- One row a repository, which orders its writers.
CREATE TABLE kb_indexes (
  repo_id  TEXT PRIMARY KEY REFERENCES repos (id),
  pages    BIGINT NOT NULL,
  next_ord BIGINT NOT NULL,
  writes   BIGINT NOT NULL,                -- how often a page was written
  formula  BIGINT NOT NULL,                -- the version of words and order that the lists are of
  due_at   BIGINT                          -- when the files of its pages are to be compared; NULL: not
);
CREATE INDEX kb_indexes_due ON kb_indexes (due_at) WHERE due_at IS NOT NULL;

-- The words of a repository that have a trigram, and the pages that have a word. Both are packed, and
-- written by the hundred: they belong to the row of kb_indexes.
CREATE TABLE kb_grams (
  repo_id TEXT NOT NULL,
  gram    BIGINT NOT NULL,
  words   BYTEA NOT NULL,
  PRIMARY KEY (repo_id, gram)
);
CREATE TABLE kb_terms (
  repo_id TEXT NOT NULL,
  term    TEXT COLLATE "C" NOT NULL,
  block   BIGINT NOT NULL,
  posts   BYTEA NOT NULL,
  PRIMARY KEY (repo_id, term, block)
);
ALTER TABLE kb_grams ALTER words SET STORAGE EXTERNAL;
ALTER TABLE kb_terms ALTER posts SET STORAGE EXTERNAL;
