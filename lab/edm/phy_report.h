/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the PHY: Table 1, Figure 5, memory beside IP load, bit errors. Run
 * and print are apart, so that the same rows go to a terminal and to JSON. The
 * JSON functions add one member to the object that is open.
 */
#ifndef AQ_EDM_PHY_REPORT_H
#define AQ_EDM_PHY_REPORT_H

#include <stdio.h>

#include "base/json_out.h"
#include "latency.h"
#include "phy_errors.h"
#include "phy_load.h"

enum {
	EDM_LOAD_ROWS = 3 * 3 * 5,  /* frame size, IP load, way of sending */
	EDM_ERROR_ROWS = 2 * 2 * 3, /* way of sending, check sum, error rate */
};

void edm_table1_print(FILE *f);
void edm_table1_json(struct json_out *j);

/* -EINVAL with words for a bad configuration. */
int edm_figure5_print(FILE *f, const struct edm_lat_config *c) MUST_CHECK;
int edm_figure5_json(struct json_out *j,
		     const struct edm_lat_config *c) MUST_CHECK;
/* Write dir/table1.svg and dir/figure5.svg. */
int edm_table1_chart(const char *dir) MUST_CHECK;
int edm_figure5_chart(const char *dir,
		      const struct edm_lat_config *c) MUST_CHECK;

struct edm_load_row {
	struct edm_load_config config;
	struct edm_load_result result;
};

/* `done` may be NULL; it is called behind every row. 64 B messages that take
 * 5 % of the link. About a second for 2,000 messages a row. */
int edm_load_rows(uint32_t messages, uint64_t seed,
		  struct edm_load_row rows[EDM_LOAD_ROWS],
		  void (*done)(void *owner, unsigned rows_done),
		  void *owner) MUST_CHECK;
void edm_load_print(FILE *f, const struct edm_load_row rows[EDM_LOAD_ROWS],
		    uint64_t block_ps);
void edm_load_json(struct json_out *j,
		   const struct edm_load_row rows[EDM_LOAD_ROWS],
		   uint64_t block_ps);

struct edm_error_row {
	struct edm_errors_config config;
	struct edm_errors_result result;
};

int edm_error_rows(uint32_t messages, uint64_t seed,
		   struct edm_error_row rows[EDM_ERROR_ROWS],
		   void (*done)(void *owner, unsigned rows_done),
		   void *owner) MUST_CHECK;
void edm_error_print(FILE *f, const struct edm_error_row rows[EDM_ERROR_ROWS]);
void edm_error_json(struct json_out *j,
		    const struct edm_error_row rows[EDM_ERROR_ROWS]);

const char *edm_md_name(enum edm_md md);

#endif
