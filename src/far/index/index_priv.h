/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of <aquifer/index.h>. */
#ifndef AQ_INDEX_PRIV_H
#define AQ_INDEX_PRIV_H

#include "base/tally.h"
#include "index_connection.h"
#include "index_walker.h"
#include "tree.h"
#include "vlist.h"

struct aq_index {
	struct aq_rack *rack;
	enum aq_index_kind kind;
	char name[AQ_INDEX_NAME_MAX + 1];
	/* One of them, by kind. */
	struct tree_geometry tree;
	struct vlist_geometry vlist;
	struct tree_locals *locals;  /* of a tree */
	struct vlist_places *places; /* of a version list */
};

struct aq_index_client {
	struct index_connection connection;
	struct index_walker walker; /* of a tree */
	struct tally *tally;	    /* or NULL */
	/* One of them. */
	struct tree_client *tree;
	struct vlist_client *vlist;
};

#endif
