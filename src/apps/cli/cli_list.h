/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and indexes of a rack, as rows for people and programs. */
#ifndef AQ_CLI_LIST_H
#define AQ_CLI_LIST_H

#include <jansson.h>

#include "base/base.h"

struct aq_rack;

/* Arrays of rows; 0 or -errno. The caller owns *rows. */
int cli_list_tables(struct aq_rack *rack, json_t **rows) MUST_CHECK;
int cli_list_indexes(struct aq_rack *rack, json_t **rows) MUST_CHECK;

/* As lines, with a head. */
void cli_list_print_tables(const json_t *rows);
void cli_list_print_indexes(const json_t *rows);

enum {
	CLI_LIST_OWNER_BYTES = 56,
};

/* What a region of that name is a part of, "kv users"; false: of nothing. */
bool cli_list_owner(const char *region, char out[CLI_LIST_OWNER_BYTES]);

#endif
