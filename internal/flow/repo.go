package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/domain/provenance"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// RefreshMerged has the policy file of a repository read again after each merge
// in it: the merge may have changed the file without a push.
func RefreshMerged(repos *repo.Service) event.Consumer {
	return event.Consumer{
		Name: "repo.refresh_merged", Kinds: []event.Any{record.MergedEvent},
		Handle: func(tx *db.Tx, e event.Recorded) error {
			if e.RepoID == nil {
				return nil
			}
			return repos.RefreshSoon(tx, *e.RepoID)
		},
	}
}

// CompareMerged has the files of the pages of a repository compared after each merge in it: a
// merge that the server makes is no push.
func CompareMerged(pages *kb.Service) event.Consumer {
	return event.Consumer{
		Name: "kb.compare_merged", Kinds: []event.Any{record.MergedEvent},
		Handle: func(tx *db.Tx, e event.Recorded) error {
			if e.RepoID == nil {
				return nil
			}
			return pages.Moved(tx, *e.RepoID)
		},
	}
}

// SignMerged has what each merge came of signed.
func SignMerged(proofs *provenance.Service) event.Consumer {
	return event.Consumer{
		Name: "provenance.sign_merged", Kinds: []event.Any{record.MergedEvent},
		Handle: func(tx *db.Tx, e event.Recorded) error {
			data, err := record.MergedEvent.Decode(e)
			if err != nil || e.RepoID == nil || data.MergeSHA == "" {
				return err
			}
			return proofs.Merged(tx, data.PRID, *e.RepoID, data.MergeSHA)
		},
	}
}
