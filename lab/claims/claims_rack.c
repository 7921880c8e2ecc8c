/* SPDX-License-Identifier: Apache-2.0 */
/* What the dissertation about Jiffy, MIND, PULSE and CXL claims of what is not
 * here yet. It has few numbers. */
#include "claims_docs.h"

static const struct claim jiffy[] = {
	CLAIM_UNTRIED("2.2", "Memory is used up to 3 times as well",
		      "not here yet"),
	CLAIM_UNTRIED("2.2", "Jobs are 1.6 to 2.5 times as fast",
		      "not here yet"),
	CLAIM_UNTRIED("2.4.3", "Leases by prefix return a dead task's memory",
		      "not here yet"),
};

const struct claim_doc claim_doc_jiffy = {"jiffy", "Jiffy (the same, 2)", jiffy,
					  ARRAY_LEN(jiffy)};
