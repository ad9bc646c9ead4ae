from polyseme.methods.full_domain.search import Search, Progress
