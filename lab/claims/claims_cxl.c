/* SPDX-License-Identifier: Apache-2.0 */
/* What the chapter on CXL claims, with the paper that it revises. */
#include "claims_docs.h"

#define MODEL(where, text, figure, what)                                   \
	CLAIM_OF_FIGURE(CLAIM_MODEL, where, text, "tier --figure " figure, \
			what, NULL)
#define SET(where, text, figure, what)                                     \
	CLAIM_OF_FIGURE(CLAIM_INPUT, where, text, "tier --figure " figure, \
			what, NULL)

#define ARITHMETIC \
	"arithmetic on published numbers: `aquifer tier cost` does it"

#define LADDER(memory, idle, read, mixed, even, write)                      \
	SET("4.1.3", memory ": " idle " ns when idle", "ladder",            \
	    memory ": idle latency"),                                       \
		SET("4.1.3", memory ": " read " GB/s of reads", "ladder",   \
		    memory ": peak, reads"),                                \
		SET("4.1.3", memory ": " mixed " GB/s, 2:1", "ladder",      \
		    memory ": peak, 2:1"),                                  \
		SET("4.1.3", memory ": " even " GB/s, 1:1", "ladder",       \
		    memory ": peak, 1:1"),                                  \
		SET("4.1.3", memory ": " write " GB/s of writes", "ladder", \
		    memory ": peak, writes")

#define KNEES(memory)                                                          \
	MODEL("4.1.3",                                                         \
	      memory ": latency rises from 75 to 83 % of the peak on", "knee", \
	      memory ": knee, of its peak, reads"),                            \
		MODEL("4.1.3", "The same, 2:1", "knee",                        \
		      memory ": knee, of its peak, 2:1"),                      \
		MODEL("4.1.3", "The same, 1:1", "knee",                        \
		      memory ": knee, of its peak, 1:1"),                      \
		MODEL("4.1.3", "The same, writes", "knee",                     \
		      memory ": knee, of its peak, writes"),                   \
		MODEL("4.1.3", "Earlier with more writes", "knee",             \
		      memory ": earlier with more writes")

#define SLOWER(w, series, text)                   \
	MODEL("4.1.4", text ", YCSB " w, "keydb", \
	      "MMEM / " series ": slower than MMEM, YCSB " w ": " series)
#define KEYDB(w)                                                               \
	SLOWER(w, "promotion", "Promotion is as fast as main memory"),         \
		SLOWER(w, "3:1", "Interleaving 3:1 is 1.2 to 1.5x slower"),    \
		SLOWER(w, "1:1", "The same, 1:1"),                             \
		SLOWER(w, "1:3", "The same, 1:3"),                             \
		SLOWER(w, "SSD 0.2", "A fifth on SSD is about 1.8x slower"),   \
		SLOWER(w, "SSD 0.4", "Two fifths on SSD as well"),             \
		MODEL("4.1.4",                                                 \
		      "SSD is 1.55x slower than interleaving, YCSB " w,        \
		      "keydb",                                                 \
		      "1:1 / SSD 0.2: SSD slower than interleaving, YCSB " w), \
		MODEL("4.1.4", "In this order, YCSB " w, "keydb",              \
		      "promotion > 3:1 > 1:1 > 1:3 > SSD, YCSB " w)

#define SPARK(series)                                                       \
	MODEL("4.1.4",                                                      \
	      "Shuffles, " series                                           \
	      ": 1.4 to 9.8x slower on two servers with CXL than on three", \
	      "spark",                                                      \
	      "MMEM / " series ": slower than three servers: " series)

static const struct claim claims[] = {
	LADDER("local", "97", "67", "61", "60", "55"),
	LADDER("remote", "131", "70", "43", "38", "34.5"),
	LADDER("CXL", "250", "48", "54", "54", "47"),
	LADDER("remote CXL", "485", "20.3", "20.7", "21.5", "27.7"),
	KNEES("local"),
	KNEES("CXL"),
	KEYDB("A"),
	KEYDB("B"),
	KEYDB("C"),
	KEYDB("D"),
	SET("4.1.4", "A store all on CXL memory does 12.5 % less", "keydb-cxl",
	    "CXL / MMEM: throughput"),
	MODEL("4.1.4", "Its latency is 9 to 27 % higher", "keydb-cxl",
	      "CXL / MMEM: latency"),
	SPARK("3:1"),
	SPARK("1:1"),
	SPARK("1:3"),
	MODEL("4.1.4", "With promotion shuffles are more than 34 % slower",
	      "spark", "MMEM / promotion: promotion slower than three servers"),
	MODEL("4.1.4",
	      "Promotion thrashes: slower than interleaving (no "
	      "number)",
	      "spark", "1:1 / promotion: promotion slower than interleaving"),
	MODEL("4.1.4", "Spilling 320 GB is far slower (no number)", "spark",
	      "1:1 / spill 320 GB: spill slower than interleaving"),
	MODEL("4.1.4", "The same, 500 GB", "spark",
	      "1:1 / spill 500 GB: spill slower than interleaving"),
	MODEL("4.1.4", "In this order", "spark",
	      "MMEM > 3:1 > 1:1 > 1:3 > spill"),
	SET("4.1.5", "A language model: 24.2 GB/s with 24 threads", "llm",
	    "weights only: bandwidth, 24 threads"),
	SET("4.1.5", "21 GB/s of a backend with full caches", "llm",
	    "MMEM: bandwidth, one backend"),
	MODEL("4.1.5", "It does not gain from more than 48 threads", "llm",
	      "MMEM / MMEM: 84 over 48 threads"),
	MODEL("4.1.5", "With 60 threads 3:1 is 1.95x main memory", "llm",
	      "3:1 / MMEM: 60 threads"),
	MODEL("4.1.5", "In this order", "llm", "3:1 > MMEM, 60 threads"),
	MODEL("4.1.5", "Beyond 64 threads 1:3 is 14 % better", "llm",
	      "1:3 / MMEM: 72 threads"),
	MODEL("4.1.5", "The same, 84 threads", "llm", "1:3 / MMEM: 84 threads"),
	MODEL("4.1.5", "In this order, 72 threads", "llm",
	      "1:3 > MMEM, 72 threads"),
	MODEL("4.1.5", "In this order, 84 threads", "llm",
	      "1:3 > MMEM, 84 threads"),
	CLAIM_UNTRIED("4.1.6", "67.29 % of the servers do the same",
		      ARITHMETIC),
	CLAIM_UNTRIED("4.1.6", "25.98 % of the cost is saved", ARITHMETIC),
	CLAIM_UNTRIED("4.1.6", "26.77 % more revenue (26.67 by its own inputs)",
		      ARITHMETIC),
	MODEL("4.1.7",
	      "Promotion should know the bandwidth in use (no number): "
	      "language model",
	      "guard",
	      "promotion, guarded / promotion: language model, 84 threads"),
	MODEL("4.1.7", "The same, 48 threads", "guard",
	      "promotion, guarded / promotion: language model, 48 threads"),
	MODEL("4.1.7", "The same, shuffle", "guard",
	      "promotion, guarded / promotion: shuffle"),
	CLAIM_UNTRIED("4.1",
		      "Memory on a real CXL 1.1 expander has these latencies",
		      "no such hardware; `aquifer tier probe` measures what "
		      "is there"),
};

const struct claim_doc claim_doc_cxl = {
	"cxl", "CXL (Y. Tang's dissertation, 4; EuroSys 2024)", claims,
	ARRAY_LEN(claims)};
