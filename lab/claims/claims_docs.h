/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the documents, and what their commands take. */
#ifndef AQ_CLAIMS_DOCS_H
#define AQ_CLAIMS_DOCS_H

#include "claims.h"

extern const struct claim_doc claim_doc_cowbird, claim_doc_edm, claim_doc_odrp,
	claim_doc_swordbox, claim_doc_rcuckoo, claim_doc_rnic, claim_doc_pulse,
	claim_doc_mind, claim_doc_jiffy, claim_doc_cxl;

#endif
