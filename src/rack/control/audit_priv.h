/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of an audit log, and its older files. The caller has the
 * lock. */
#ifndef AQ_CTL_AUDIT_PRIV_H
#define AQ_CTL_AUDIT_PRIV_H

#include "ctl_audit.h"

struct audit_ring {
	char *line[CTL_AUDIT_KEPT]; /* heap; NULL: none yet */
	unsigned next;
};

void audit_ring_add(struct audit_ring *r, const char *text, size_t text_bytes);
void audit_ring_release(struct audit_ring *r);
/* Oldest first. */
json_t *audit_ring_json(const struct audit_ring *r);
/* With the end of a file. */
int audit_ring_fill(struct audit_ring *r, const char *path) MUST_CHECK;
/* Makes place for a new file: 0 or -errno. */
int audit_files_shift(const char *path, unsigned files) MUST_CHECK;

#endif
