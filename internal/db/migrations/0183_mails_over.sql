-- +goose Up
-- By this, mails that are over are forgotten where the operator has said after how long.
CREATE INDEX mails_over ON mails (created_at) WHERE state <> 'due';
