"""Model endpoints: who they are, how they are asked, and what is done when they break."""
